"""Analysis of linear systems: poles, zeros, frequency and time responses, sampling."""
