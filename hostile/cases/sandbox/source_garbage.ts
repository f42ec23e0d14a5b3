// expect: ECOMPILE
\u0000 \ud800 <<<<<<< HEAD ??? ===
