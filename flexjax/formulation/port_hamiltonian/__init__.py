"""Paper 004: port-based modelling of a flexible link (Macchelli, Melchiorri, Stramigioli)."""

from flexjax.formulation.port_hamiltonian._formulation import PortHamiltonian as PortHamiltonian
