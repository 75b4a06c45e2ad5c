"""Where solutions meet bounds: what an engine did, put into the arrays that bounds are made from."""
