"""The interfaces of flexible links: what only some have is required where it is used."""

import pytest

from flexjax.formulation.finite_element._link import FiniteElementLinks
from flexjax.formulation.screw_synthesis._link import ModalLinks
from flexjax.mechanism.chain import AbstractLinks, AbstractSlidingLinks, sliding_links


def test_links_that_cannot_slide_are_refused():
    links = ModalLinks.__new__(ModalLinks)
    with pytest.raises(TypeError, match="links: ModalLinks; expected AbstractSlidingLinks"):
        sliding_links(links)


def test_finite_elements_have_the_interface_and_modes_do_not():
    assert issubclass(FiniteElementLinks, AbstractSlidingLinks)
    assert issubclass(ModalLinks, AbstractLinks) and not issubclass(
        ModalLinks, AbstractSlidingLinks
    )
