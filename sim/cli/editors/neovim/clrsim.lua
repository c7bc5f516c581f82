-- clr-sim in Neovim 0.7 and later: `:luafile` it, or copy it into ~/.config/nvim/after/ftplugin/kdl.lua.
-- Neovim 0.11 has vim.lsp.config and vim.lsp.enable instead: `clrsim lsp --help` shows them.

-- Versions before 0.8 know no such type of files.
vim.cmd("autocmd BufRead,BufNewFile *.kdl setlocal filetype=kdl")

local function start()
  local buffer = vim.api.nvim_get_current_buf()
  local settings = { name = "clrsim", cmd = { vim.env.CLRSIM or "clrsim", "lsp" }, root_dir = vim.fn.getcwd() }
  if vim.lsp.start then
    vim.lsp.start(settings)
  else
    vim.g.clrsim_client = vim.g.clrsim_client or vim.lsp.start_client(settings)
    vim.lsp.buf_attach_client(buffer, vim.g.clrsim_client)
  end
end

if vim.api.nvim_create_autocmd then
  vim.api.nvim_create_autocmd("FileType", { pattern = "kdl", callback = start })
end
if vim.bo.filetype == "kdl" then
  start()
end
