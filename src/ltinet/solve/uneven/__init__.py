"""Steps of any lengths, without an exponential for each."""
