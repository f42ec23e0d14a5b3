/** Says hello. */
'hello';
