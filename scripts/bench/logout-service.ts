// A service for the benchmarks of the delivery and the logout: reads the request and answers 200, after so many milliseconds
// as its argument says.
import { createServer } from 'node:http';
import { listen } from './listen.js';

const delayMs = Number(process.argv[2] ?? 0);

const server = createServer((request, response) => {
  request.resume().once('end', () => {
    if (delayMs > 0) setTimeout(() => response.end(), delayMs);
    else response.end();
  });
});
process.once('disconnect', () => process.exit());
process.send?.({ url: `${await listen(server)}/auth/logout/demo` });
