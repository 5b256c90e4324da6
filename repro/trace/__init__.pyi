from .dressing import dress as dress
from .predictions import predict_durations as predict_durations
