"""Ways to choose which neurons share a block, as siblings: by condition number, by count, by clusters."""
