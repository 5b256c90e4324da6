"""What single figures of Muri compute."""
