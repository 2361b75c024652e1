"""The weighted residuals of all data, and the search for the parameters that minimise them."""
