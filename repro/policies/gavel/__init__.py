"""Gavel (OSDI 2020) and the policies it is compared with.

A Gavel policy is an optimisation problem over the allocation X (section 3.1). X_mj is the fraction
of time that job m spends on GPU type j. Every problem has these constraints:

- X_mj >= 0, and sum_j X_mj <= 1 for every job m.
- sum_m scale_factor_m X_mj <= num_workers_j for every GPU type j.

Symbols of the module docstrings:

- T_mj: steps per second of job m on type j, with all its GPUs.
- throughput(m, X) = sum_j T_mj X_mj: steps per second of job m under X.
- scale_factor_m: GPUs of job m. num_workers_j: GPUs of type j.
- w_m: priority weight. num_steps_m: remaining steps. t_m: seconds since the arrival.
- X^equal_mj = num_workers_j / sum_j num_workers_j: an equal split of time over all GPUs.
- C_m: combinations with space sharing, that is job m alone and its pairs with other jobs.
- T^m_kj: steps per second of job m in combination k on type j.

A line "Ties:" says what happens among equal jobs, and which of many optima is taken. The rounds
settle equal priorities in the same way for all policies (docs/rules-gavel.md).
"""

#: The paper in which these policies are compared.
PAPER = "Gavel, OSDI'20"
