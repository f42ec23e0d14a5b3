#!/usr/bin/env node
/*! Copyright, all of it. */

// Says hello.
module.exports = exports = () => 'hello';
