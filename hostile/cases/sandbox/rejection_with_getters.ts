// expect: ERR_ISOLATE_TIMEOUT
Promise.reject({ get message() { for (;;) {} } });
return 1;
