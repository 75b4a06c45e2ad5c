"""A page in the browser on which a system is dropped, its budget slid, and the network that comes of it seen."""
