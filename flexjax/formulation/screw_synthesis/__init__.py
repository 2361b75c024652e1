"""Screw-theoretic synthesis of serial arms with flexible links (Yaqubi, Mattila), in O(n)."""

from flexjax.formulation.screw_synthesis._formulation import ScrewSynthesis as ScrewSynthesis
