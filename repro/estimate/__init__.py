"""Learned and measured inputs of policies: service-time histories and estimators."""
