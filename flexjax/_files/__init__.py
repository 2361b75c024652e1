"""Files of any kind: whole writes, and checks before a file from elsewhere is read. Imports no jax."""

from flexjax._files._error import FileError as FileError, reading as reading
from flexjax._files._read_whole import read_whole as read_whole
from flexjax._files._write import recover as recover, write_whole as write_whole
