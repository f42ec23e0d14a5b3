"just a string"
