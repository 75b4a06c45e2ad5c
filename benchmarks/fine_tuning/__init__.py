"""Training steps that a constructed network, recurrent units and a layer of random poles need for a perturbed beam."""
