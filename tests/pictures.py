"""The smallest files of the types that models take, as base64."""

import base64

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
JPEG = base64.b64encode(b"\xff\xd8\xff\xe0 no more than the beginning").decode()
GIF = base64.b64encode(b"GIF89a no more than the beginning").decode()
WEBP = base64.b64encode(b"RIFF\0\0\0\0WEBP no more").decode()
PDF = base64.b64encode(b"%PDF-1.4\n\0tiny\n%%EOF\n").decode()
