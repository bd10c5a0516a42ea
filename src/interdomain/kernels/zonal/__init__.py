"""Zonal kernels: functions of the angle between inputs that are on a sphere or lifted to one."""
