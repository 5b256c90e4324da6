"""The words every part uses: decisions, jobs, views, records, policies, their registry."""
