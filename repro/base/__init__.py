"""What every room uses: errors, folders, types of arrays, compiled loops."""
