from shop.util import cents


def slug(title: str) -> str:
    return title.lower().replace(" ", "-", 1)


def price(amount: float) -> str:
    return f"{cents(amount)} ct"
