"""Numbers of a model from measured data, with their uncertainty."""

from flexjax.identify._data import FrequencyResponse as FrequencyResponse, Modal as Modal
from flexjax.identify._dataset import (
    Dataset as Dataset,
    datasets as datasets,
    load_dataset as load_dataset,
)
from flexjax.identify._design import Design as Design, design as design
from flexjax.identify._experiment import Experiment as Experiment
from flexjax.identify._free import Free as Free
from flexjax.identify._identify import identify as identify
from flexjax.identify._posterior import Posterior as Posterior, sample_posterior as sample_posterior
from flexjax.identify._result import Comparison as Comparison, Identification as Identification
