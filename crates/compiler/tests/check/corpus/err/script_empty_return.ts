/** Returns nothing. */
tgp.log('done');
return;
