"""Maximum-weight matching over jobs and over classes of equal jobs."""
