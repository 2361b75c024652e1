"""Natural frequencies as data: paper 002."""

import numpy as np
import pytest

import flexjax as fx


def test_paper_002_young_modulus(record_number):
    """Li and Zhang measure 6.05 Hz and compute 6.10 Hz; Table II prints E = 7e9, which gives 1.94
    Hz.
    """
    formulation = fx.TransferMatrix(segments=20)
    printed = formulation.bind(fx.load_robot("li-zhang-single-link-printed"))
    found = {}
    for label, frequency in (("measured", 6.05), ("theory", 6.10)):
        result = fx.identify(printed, fx.Modal([frequency], sd=0.01), "links.link.material.E")
        found[label] = result.values[0]
        low, high = result.intervals(0.999)[0]
        assert low < 69e9 < high and not low < 7e9 < high
    record_number(
        "paper 002: E from the measured 6.05 Hz [Pa]", found["measured"], (68e9, 70e9), "in"
    )
    record_number(
        "paper 002: E from the theory's 6.10 Hz [Pa]", found["theory"], (68e9, 70e9), "in"
    )
    assert float(fx.modes(printed).frequencies[0]) == pytest.approx(1.94, abs=0.01)
    assert "6.1 (measured 6.1)" in str(result)
    assert (
        "links.link.material.E = 7e+09 of the description cannot be right"
        in fx.identification_report(result).html
    )


def test_bad_modal_data_are_refused():
    for change, message in (
        ({"frequencies": [-1.0]}, "positive numbers in Hz"),
        ({"damping": [2.0]}, "ratio from 0 to below 1"),
        ({"index": (0, 1)}, "for each frequency"),
        ({"sd": 0.0}, "positive numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            fx.Modal(**({"frequencies": [6.0]} | change))


def test_bad_responses_are_refused():
    with pytest.raises(ValueError, match="as many finite complex values"):
        fx.FrequencyResponse([1.0, 2.0], [1.0], "pin", "angle")
    response = fx.FrequencyResponse([1.0, 2.0], [1.0, 1j], "pins", "angel")
    faults = response.faults(fx.load_robot("two-link"))
    assert "is no joint" in faults[0] and "is no sensor" in faults[1]
    assert len(response.pick([0]).frequencies) == 1 and np.allclose(response.sd, 1.0)


def test_response_from_noise_finds_a_known_filter():
    from scipy.signal import dlsim, dlti

    rng = np.random.default_rng(0)
    step, n = 0.01, 40000
    system = dlti([0.1, 0.05], [1.0, -1.5, 0.8], dt=step)
    u = rng.normal(size=n)
    y = dlsim(system, u)[1][:, 0] + 0.01 * rng.normal(size=n)
    e = fx.Experiment(step * np.arange(n), {"angle": y}, efforts={"pin": u})
    found = fx.FrequencyResponse.from_noise(e, "pin", "angle", segment=2.56, band=(1.0, 40.0))
    z = np.exp(2j * np.pi * found.frequencies * step)
    true = (0.1 * z + 0.05) / (z**2 - 1.5 * z + 0.8)
    away = np.abs(found.values - true) / found.sd
    # Real and imaginary part each within their standard deviation two times in three; leakage at
    # the resonance adds a little.
    assert np.median(away) < 2.0 and np.max(np.abs(found.values / true - 1)) < 0.2
