"""Screw-theoretic synthesis of serial arms with flexible links (Yaqubi, Mattila): dual screws, modal
deformation, interaction wrenches, in O(n)."""

from flexjax.formulation.screw_synthesis._formulation import ScrewSynthesis as ScrewSynthesis
