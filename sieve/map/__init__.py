"""The shape `map`: a static function from a key's hash to its location."""
