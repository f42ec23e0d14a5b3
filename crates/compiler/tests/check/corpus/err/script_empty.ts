/** Nothing at all. */
