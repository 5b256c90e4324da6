from .dressing import dress as dress
