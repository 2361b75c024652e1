"""Discrete-time transfer matrices with finite segments (paper 002)."""

from flexjax.formulation.transfer_matrix._formulation import TransferMatrix as TransferMatrix
