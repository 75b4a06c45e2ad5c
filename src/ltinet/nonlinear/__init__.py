"""Models with products: bilinear, linear parameter-varying and quadratic-bilinear systems and their networks."""
