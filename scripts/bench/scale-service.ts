// A service for the benchmark of scale: hands out tokens, and says yes to every erasure and every logout.
import { createServer } from 'node:http';
import { listen } from './listen.js';

const token = JSON.stringify({ access_token: 'a-token', token_type: 'Bearer', expires_in: 7200 });
const yes = JSON.stringify({ success: true });

const server = createServer((request, response) => {
  request.resume().once('end', () => {
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.end(request.url?.startsWith('/oauth/token') ? token : yes);
  });
});
process.send?.({ url: await listen(server) });
process.once('disconnect', () => process.exit());
