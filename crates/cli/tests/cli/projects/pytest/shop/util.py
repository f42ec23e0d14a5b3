def cents(amount: float) -> int:
    scaled = amount * 100
    rounded = round(scaled)
    return int(rounded)
