"""Input signals: samples with a hold, functions, piecewise polynomials, batches and delays; time axes."""
