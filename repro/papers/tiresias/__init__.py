"""What single figures of Tiresias compute."""
