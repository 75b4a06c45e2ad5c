"""Steps of one length, and the ways to take many of them."""
