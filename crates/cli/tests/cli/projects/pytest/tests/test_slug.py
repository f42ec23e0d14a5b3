from shop.slug import price, slug


def test_joins_all_words():
    assert slug("Blue ink pen") == "blue-ink-pen"


def test_counts_cents():
    assert price(1.5) == "150 ct"
