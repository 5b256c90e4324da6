"""Columns of the measured tables, in the order of the files, and the columns that name a row."""

from __future__ import annotations

from collections.abc import Mapping

#: File -> columns. GPU memory (gpu_mem_…_mb, reserved_mb, mem_used_mb, offload_…_mb) is in MiB
#: (2^20 bytes). Other columns in _mb and _mb_s are in MB (10^6 bytes).
COLUMNS: Mapping[str, tuple[str, ...]] = {
    name: tuple(text.split())
    for name, text in {
        "machine.csv": "name value",
        "profiles.csv": """run model kind params_m batch_size input_size precision optimizer
            input_mode loader_workers num_ps num_workers num_batches dataset_samples status iters
            window_s warm_s iter_s iter_s_p50 iter_s_std samples_per_s train_s_extrapolated t_data_s
            t_compute_s t_sync_s gpu_busy_frac kernel_s_per_iter kernels_per_iter gpu_util_mean
            gpu_util_std gpu_util_n gpu_membus_util gpu_mem_alloc_mb gpu_mem_reserved_mb
            gpu_mem_nvml_mb cpu_cores host_rss_mb host_pss_mb file_read_mb_s disk_read_mb_s h2d_mb_s
            pcie_tx_mb_s pcie_rx_mb_s ps_mb_s_each_way power_w energy_j_per_iter sm_mhz error""",
        "isolated.csv": """mode job batch_size input_size precision optimizer params_m reserved_mb
            when iters_per_s samples_per_s n gpu_util_mean power_w""",
        "colocated.csv": """mode k jobs job_a job_b job_c iso_a iso_b iso_c rate_a rate_b rate_c
            norm_a norm_b norm_c norm_sum n_a n_b n_c gpu_util_mean mem_used_mb power_w""",
        "stages.csv": """job kind batch_size input_size precision params_m iters storage_s cpu_s
            h2d_s forward_s backward_s update_s d2h_s network_s h2d_params_s gpu_s total_s
            storage_share cpu_share gpu_share network_share gpu_util_mean""",
        "interleave.csv": """group mode k jobs job batch_size gpu_passes raw_images iso_rate rate
            norm n storage_s cpu_s gpu_s network_s lock_wait_s group_norm_sum gpu_util_mean""",
        "pause.csv": """job params_m batch_size optimizer repeat spawn_s import_s cuda_init_s
            build_s pool_s first_iter_s launch_total_s iter_s save_d2h_s save_write_s save_fsync_s
            checkpoint_mb exit_s resume_spawn_s resume_import_s resume_cuda_init_s resume_build_s
            resume_read_s resume_restore_s resume_first_iter_s resume_total_s pause_resume_total_s
            offload_s reload_s offload_after_s offload_held_mb offload_left_mb error""",
        "sequence.csv": """scenario model job iters t0_unix spawn_at ready_at train_start_at
            train_end_at saved_at gone_at makespan_s""",
        "sequence_gpu.csv": """t gpu_util mem_util mem_used_mb power_w sm_mhz pcie_tx_kb_s
            pcie_rx_kb_s energy_mj""",
    }.items()
}
#: File -> columns whose values name a row. A run that goes on after an interruption skips
#: rows that the file already has.
KEYS: Mapping[str, tuple[str, ...]] = {
    "machine.csv": ("name",),
    "profiles.csv": ("run",),
    "isolated.csv": ("mode", "job", "when"),
    "colocated.csv": ("mode", "jobs"),
    "stages.csv": ("job", "batch_size"),
    "interleave.csv": ("group", "mode", "job"),
    "pause.csv": ("job", "repeat"),
    "sequence.csv": ("scenario", "model", "job"),
    "sequence_gpu.csv": ("t",),
}
