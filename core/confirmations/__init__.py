"""Asking people: what the agent wants leave for, or wants to know, decided once and by somebody who may."""
