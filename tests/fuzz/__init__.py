"""Random cases, sensible and not: each ends as a right answer, a refusal or a typed status."""
