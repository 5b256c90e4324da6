"""Programmes over shares of GPU time; each file names the problem it solves."""
