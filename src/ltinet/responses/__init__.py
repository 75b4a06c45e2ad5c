"""Responses to a step, an impulse and an initial state, at times that are chosen from the poles, and what they tell."""
