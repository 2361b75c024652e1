"""Estimate robot parameters from measured data, with confidence intervals."""

from flexjax.study.identify._compare_models import (
    ModelComparison as ModelComparison,
    compare_models as compare_models,
)
from flexjax.study.identify._design import Design as Design, design as design
from flexjax.study.identify._identify import identify as identify
from flexjax.study.identify._posterior import (
    Posterior as Posterior,
    sample_posterior as sample_posterior,
)
from flexjax.study.identify._result import (
    Comparison as Comparison,
    Identification as Identification,
)
from flexjax.study.identify.records._data import (
    FrequencyResponse as FrequencyResponse,
    Modal as Modal,
)
from flexjax.study.identify.records._dataset import (
    Dataset as Dataset,
    datasets as datasets,
    load_dataset as load_dataset,
)
from flexjax.study.identify.records._experiment import Experiment as Experiment
from flexjax.study.identify.records._modal_track import ModalTrack as ModalTrack
from flexjax.study.identify.records._unknown_start import UnknownStart as UnknownStart
