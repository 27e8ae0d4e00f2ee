"""Recorded traffic that comes with fairstream. Data only; README.md says where it is from and under which licence."""
