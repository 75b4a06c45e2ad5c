"""How wrong a simulation may be: gains of neurons, errors of layers, defects of solutions; arrays in, arrays out."""
