// Hashes, keys, signatures and ciphers.
import { createHash, generateKeyPairSync, sign, verify, randomBytes, createCipheriv, scryptSync } from 'node:crypto'

const { publicKey, privateKey } = generateKeyPairSync('ed25519')
const signed = verify(null, Buffer.from('text'), publicKey, sign(null, Buffer.from('text'), privateKey))
const cipher = createCipheriv('aes-256-gcm', scryptSync('word', 'salt', 32), randomBytes(12))
console.log(createHash('sha256').update('abc').digest('hex').slice(0, 8), signed, cipher.update('x').length)
