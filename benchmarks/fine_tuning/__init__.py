"""How many steps a constructed network, recurrent units and a layer of random poles need to learn a perturbed beam."""
