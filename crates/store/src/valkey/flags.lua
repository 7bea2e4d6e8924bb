-- All fields of the hash of flags. KEYS: the hash.
return call('HGETALL', KEYS[1])
