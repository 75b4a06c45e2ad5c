"""Interactive page in the browser: choose a system and a limit on cond(T), and see the network."""
